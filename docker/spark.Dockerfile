# Spark with the source `headgate` in it, for the driver and for every executor: one image, one path of the interpreter.
#
#   docker build --file docker/spark.Dockerfile --tag headgate-spark:0.1.0 .
#   docker run --rm --volume ./lake:/lake:ro headgate-spark:0.1.0 \
#     python -m headgate.ops.jobs.publish /lake/quotes --topic quotes/all --server broker-1:7400
#
# Why one image: Spark starts a source that it found by itself with the interpreter of the driver, by path, on every
# executor. PySpark's minor version must be that of the cluster.

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
RUN /opt/headgate/bin/pip install --constraint constraints.txt '.[broker,spark]'

FROM python:3.13.13-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
 && rm -rf /var/lib/apt/lists/*
COPY --from=install /opt/headgate /opt/headgate

# Checkpoints, audits and Spark's own temporary files.
RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin headgate \
 && install --directory --owner=10001 --group=10001 --mode=0750 /var/lib/headgate
USER 10001:10001
WORKDIR /var/lib/headgate
VOLUME /var/lib/headgate

ENV PATH=/opt/headgate/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYSPARK_PYTHON=/opt/headgate/bin/python \
    PYSPARK_DRIVER_PYTHON=/opt/headgate/bin/python

STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--"]
CMD ["spark-submit", "--version"]
