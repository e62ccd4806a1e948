#!/bin/sh
# gpud in a pod: joins the pool with the token of its account at the first start, and goes on in that place afterwards.
# $SLUICE_BROKER_URL is the broker; arguments are gpud's own.
set -eu
# A node may have served an installation that is gone: each has a place of its own, by its broker and authority.
installation=$({ echo "$SLUICE_BROKER_URL"; cat /etc/sluice/ca.crt 2>/dev/null || true; } | sha256sum | cut -c1-16)
# Workers may read the arguments of gpud, and not the file with the token.
exec /usr/local/bin/gpud --broker "$SLUICE_BROKER_URL" --account /var/run/secrets/sluice/token \
  --state "/var/lib/sluice-gpud/$installation" "$@"
