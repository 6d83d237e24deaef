# SPDX-License-Identifier: ISC
# What tests/system/package-*.sh share.
. ./lib.bash
export DEBIAN_FRONTEND=noninteractive

# The older and the newer version.
if [ -d /root/debs-old ]; then
	old=/root/debs-old new=/root/debs
else
	old=/root/debs new=/root/debs-new
fi

apt_() { # apt_ remove|purge PACKAGE...
	apt-get -q -y "$@"
}

apt_install() { # apt_install DIRECTORY [OPTION...]
	local debs=("$1"/execd_*.deb "$1"/execctl_*.deb)
	shift
	apt-get -q -y --allow-downgrades -o Dpkg::Options::=--force-confold "$@" install "${debs[@]}"
}

version_of() { # version_of DIRECTORY
	dpkg-deb -f "$1"/execd_*.deb Version
}

running_version() {
	execd ctl --json status | jq -r '.result.version // .version'
}

# Nothing of execd is on this machine.
clean() {
	apt_ purge execd execctl >/dev/null 2>&1 || true
}

token() { # token NAME: makes it, and prints what the server keeps of it
	(umask 077; openssl rand -hex 32 >"/root/$1.token")
	tr -d '\n' <"/root/$1.token" | sha256sum | cut -d' ' -f1
}

configure() {
	mkdir -p /etc/execd
	cat >/etc/execd/execd.conf <<-CONF
		[listener local]
		address = ws://127.0.0.1:8766

		[identity ci]
		user = ci
		token-sha256 = $(token ci)
	CONF
}
