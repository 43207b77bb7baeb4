#!/bin/sh
# What the brokers of docker-compose.yml want before they start, made once: an authority, a pair for each broker, and the
# first users with passwords that nobody chose. `docker compose run --rm init renew` makes new certificates under the
# same authority; running brokers use them within seconds.
#
# The authority's key stays in a volume that no broker has. What brokers and clients read is in the other one.
set -eu
umask 077
secrets=${SECRETS:-/etc/headgate} authority=${AUTHORITY:-/authority} examples=${EXAMPLES:-/opt/demo}
brokers="broker-1 broker-2 broker-3"

if [ ! -e "$secrets/ca.pem" ] || [ "${1:-}" = renew ]; then
  headgate cert init "$authority" --brokers "$(echo "$brokers" | tr ' ' ,)"
  for name in $brokers; do
    # The key first: a certificate beside a key that is not its own is not used.
    cp "$authority/$name.key" "$secrets/.new" && mv "$secrets/.new" "$secrets/$name.key"
    cp "$authority/$name.pem" "$secrets/.new" && mv "$secrets/.new" "$secrets/$name.pem"
  done
  cp "$authority/ca.pem" "$secrets/ca.pem"
fi

[ -e "$secrets/roles.toml" ] || cp "$examples/roles.toml" "$secrets/roles.toml"
for user in feed watcher prometheus operator; do
  if [ ! -e "$secrets/$user.password" ]; then
    python -c 'import secrets; print(secrets.token_urlsafe(24))' > "$secrets/.new"
    headgate user add "$user" --roles "$user" --users "$secrets/users.toml" --password-file "$secrets/.new"
    mv "$secrets/.new" "$secrets/$user.password"
  fi
done

# Prometheus runs as somebody else.
chmod 0644 "$secrets/ca.pem" "$secrets/prometheus.password"
