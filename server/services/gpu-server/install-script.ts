import { arch } from "node:process";

/** `uname -m` of hosts on which a program that was built here runs. */
const MACHINE = arch === "arm64" ? "aarch64" : "x86_64";

/** Quotes any text as one shell word. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export type Install = {
  portalUrl: string;
  brokerUrl: string;
  token: string;
  sha256: string;
  name: string | undefined;
};

const trimmed = (url: string) => url.replace(/\/$/, "");
const addressOf = (portalUrl: string, file: string) => `${trimmed(portalUrl)}/api/v1/gpu-servers/install?file=${file}`;

/** The command for the GPU host. `printf` is built into the shell, so the list of processes does not show the token. */
export function installLine({ portalUrl, token, name }: Pick<Install, "portalUrl" | "token" | "name">): string {
  const authorization = quoted(`Authorization: Bearer ${token}`);
  const given = name === undefined ? "" : ` -s -- ${quoted(name)}`;
  return `printf %s ${authorization} | curl -fsS -H @- ${quoted(addressOf(portalUrl, "script"))} | sh${given}`;
}

/**
 * The script behind that command. It downloads gpud with the token, compares its checksum and joins the pool. As root
 * on a host with systemd it installs a service. The first argument, if any, is the server's name.
 */
export function installScript({ portalUrl, brokerUrl, token, sha256 }: Omit<Install, "name">): string {
  return `#!/bin/sh
set -eu
main() {
if [ "$(uname -s) $(uname -m)" != "Linux ${MACHINE}" ]; then
  echo "This gpud is for Linux on ${MACHINE}; this host is $(uname -s) on $(uname -m). Build gpud here instead." >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  bin=/usr/local/bin state=/var/lib/sluice-gpud
else
  bin="$HOME/.local/bin" state="\${XDG_STATE_HOME:-$HOME/.local/state}/sluice-gpud"
fi
case "\${1-}" in
  *[!A-Za-z0-9._-]*) echo "A server name may have letters, digits, dots, dashes and _ only." >&2; exit 1 ;;
esac
umask 077
mkdir -p "$bin" "$state"
file=$(mktemp "$bin/.gpud.XXXXXX")
trap 'rm -f "$file"' EXIT
printf '%s' ${quoted(`Authorization: Bearer ${token}`)} > "$state/download-header"
curl -fsS --max-time 900 -H "@$state/download-header" -o "$file" \
  ${quoted(addressOf(portalUrl, "gpud"))}
rm -f "$state/download-header"
if ! echo "${sha256}  $file" | sha256sum -c - > /dev/null; then
  echo "The checksum of the downloaded gpud is not ${sha256}. Nothing was installed." >&2
  exit 1
fi
chmod 755 "$file"
mv "$file" "$bin/gpud"
printf '%s' ${quoted(token)} > "$state/join-token"
set -- join ${quoted(trimmed(brokerUrl))} --token-file "$state/join-token" --state "$state" \${1:+--name "$1"}
if [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ]; then
  {
    printf '[Unit]\\nDescription=Sluice GPU server\\nWants=network-online.target\\nAfter=network-online.target\\n\\n'
    printf '[Service]\\nExecStart=%s' "$bin/gpud"
    for word in "$@"; do printf ' "%s"' "$(printf '%s' "$word" | sed 's/%/%%/g')"; done
    printf '\\nRestart=on-failure\\nRestartSec=5\\n\\n[Install]\\nWantedBy=multi-user.target\\n'
  } > /etc/systemd/system/sluice-gpud.service
  chmod 644 /etc/systemd/system/sluice-gpud.service
  systemctl daemon-reload
  systemctl enable --now sluice-gpud.service
  echo "gpud runs as sluice-gpud.service. Its log: journalctl -u sluice-gpud"
else
  echo "gpud runs until this terminal ends. Start it again: $bin/gpud --state $state"
  exec "$bin/gpud" "$@"
fi
}
# The call is last, so that a truncated download runs nothing.
main "$@"
`;
}
