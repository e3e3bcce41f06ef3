#!/usr/bin/env bash
# Makes sure that the host's packages are there: installs what is missing as root, else prints the one line to run.
set -euo pipefail

declare -A package_of=([git]=git [make]=make [gcc]=gcc [tshark]=tshark [python3]=python3)
missing=()
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "Host packages are missing. As root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
fi
echo "Installing host packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
