#!/bin/sh
# First process of a workspace: lays the overlay's fixed files, starts the server, hands SIGTERM on to it, reaps
# orphans, and ends when the server ends.
# usage: init.sh READY-FILE OVERLAY PACKAGES COMMAND...
ready=$1 overlay=$2 packages=$3
shift 3
ulimit -c 0
cp -R -P --remove-destination "$overlay/." "$packages"
cd "$HOME"
"$@" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT HUP
: >"$ready"
code=0
while kill -0 "$child" 2>/dev/null; do
  wait "$child"
  code=$?
done
exit "$code"
