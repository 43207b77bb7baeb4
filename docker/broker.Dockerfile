# One broker, or any other verb of `headgate`: docker build --file docker/broker.Dockerfile --tag headgate:0.1.0 .
#
# The first stage installs, the second only runs: no compiler, no cache and no source reaches it. Every package that is
# installed has its version from constraints.txt. The base image is named by its exact release: a digest would freeze
# the security updates of its system packages too, which a rebuild should bring.

FROM python:3.13.13-slim-bookworm AS install
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/headgate
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE pyspark_headgate.py ./
COPY headgate headgate
COPY broker broker
COPY matching matching
COPY ops ops
COPY protocol protocol
RUN /opt/headgate/bin/pip install --constraint constraints.txt '.[broker]'

FROM python:3.13.13-slim-bookworm
COPY --from=install /opt/headgate /opt/headgate

# By number, so that a host or an orchestrator can see that it is not the superuser. A new volume for the data takes
# over the owner of the folder that it covers.
RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin headgate \
 && install --directory --owner=10001 --group=10001 --mode=0750 /var/lib/headgate \
 && install --directory --owner=10001 --group=10001 --mode=0755 /etc/headgate \
 && install --directory --owner=10001 --group=10001 --mode=0700 /authority
USER 10001:10001
WORKDIR /var/lib/headgate
VOLUME /var/lib/headgate

# Every address of the container, since its loopback is nobody else's. So a broker wants certificates and names, or to be
# told HEADGATE_INSECURE=true where the container's network and what is published of it decide who reaches it.
ENV PATH=/opt/headgate/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HEADGATE_LISTEN=0.0.0.0:7400 \
    HEADGATE_PEER_LISTEN=0.0.0.0:7401 \
    HEADGATE_ADMIN=0.0.0.0:7402 \
    HEADGATE_DATA=/var/lib/headgate
EXPOSE 7400 7401 7402

# A slim image has no curl. http.client asks no proxy, which urllib would where the environment names one. Where there is
# a certificate the port speaks TLS; whose it is does not matter to oneself.
HEALTHCHECK --interval=5s --timeout=3s --start-period=15s --retries=3 \
  CMD ["python", "-c", "import http.client, os, ssl, sys; tls = {'context': ssl._create_unverified_context()} if os.environ.get('HEADGATE_TLS_CERT') else {}; admin = (http.client.HTTPSConnection if tls else http.client.HTTPConnection)('127.0.0.1', 7402, timeout=2, **tls); admin.request('GET', '/readyz'); sys.exit(admin.getresponse().status != 200)"]

STOPSIGNAL SIGTERM
ENTRYPOINT ["headgate"]
CMD ["serve"]
