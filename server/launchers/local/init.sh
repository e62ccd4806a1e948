#!/bin/sh
# First process of a workspace: lays the overlay's fixed files, caches and the home's links to datasets, starts the way out of
# its network namespace and the server, hands SIGTERM on to the server, reaps orphans, and ends when the server ends.
# usage: init.sh READY-FILE OVERLAY PACKAGES DATASETS FORWARD COMMAND...
#   FORWARD  a command that is kept running beside the server, or "" where the workspace shares the host's network
ready=$1 overlay=$2 packages=$3 datasets=$4 forward=$5
shift 5
ulimit -c 0
# The programs before this one run with more rights, so a local workspace's variables come under other names.
for name in $(env | sed -n 's/^SLUICE_SET_\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
  eval "if [ -n \"\${SLUICE_SET_$name+set}\" ]; then export $name=\"\$SLUICE_SET_$name\"; unset SLUICE_SET_$name; fi"
done
# For programs whose environment was cleared (`env -i`, sudo): the client library reads it.
env | grep '^SLUICE_' >"${ready%/*}/variables"
# Removes commands of an earlier environment.
rm -rf "$packages/commands"
cp -R -P --remove-destination "$overlay/." "$packages"
if [ -d "$overlay/cache" ]; then
  mkdir -p "$HOME/.cache" && cp -R -n "$overlay/cache/." "$HOME/.cache"
fi
for link in "$HOME/datasets"/*; do
  case $(readlink "$link") in "$datasets"/*) [ -e "$link" ] || rm -f "$link" ;; esac
done
for dataset in "$datasets"/*; do
  [ -d "$dataset" ] || continue
  mkdir -p "$HOME/datasets"
  link=$HOME/datasets/${dataset##*/}
  if [ -L "$link" ] || [ ! -e "$link" ]; then ln -sfn "$dataset" "$link"
  else echo "$link is a file or folder of the workspace: the dataset of that name lies at $dataset" >&2; fi
done
cd "$HOME"
if [ -n "$forward" ]; then
  while :; do
    $forward
    sleep 1
  done &
fi
"$@" &
child=$!
asked=
trap 'asked=yes; kill -TERM "$child" 2>/dev/null' TERM INT HUP
: >"$ready"
code=0
while kill -0 "$child" 2>/dev/null; do
  wait "$child"
  code=$?
done
# A good end is that of a server which a person shut down. One that was asked from outside tells so: a node forgets why it
# evicted a pod whose program ends well.
if [ -n "$asked" ] && [ "$code" -eq 0 ]; then code=143; fi
exit "$code"
