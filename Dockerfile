# The proxy alone: docker build -t streamfrom . && docker run -v $PWD/etc:/etc/streamfrom:ro -p 15306:15306 streamfrom
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS build
# The time of all that is made here; with it pip compiles modules to files without a time. `./dev release` prints the
# command that builds the same image twice.
ARG SOURCE_DATE_EPOCH=1580601600
ENV SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH
WORKDIR /src
RUN ["python", "-m", "venv", "/opt/streamfrom"]
RUN ["python", "-m", "venv", "/opt/build"]
# Dependencies first: they change less often than the code. pip takes no file whose hash is not in the lock.
COPY requirements-build.lock requirements-proxy.lock ./
RUN ["/opt/streamfrom/bin/pip", "install", "--no-cache-dir", "--require-hashes", "--requirement", "requirements-proxy.lock"]
RUN ["/opt/build/bin/pip", "install", "--no-cache-dir", "--require-hashes", "--requirement", "requirements-build.lock"]
# .dockerignore lets nothing through but the packages and what describes them.
COPY . ./
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/streamfrom/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
LABEL org.opencontainers.image.title="streamfrom" \
      org.opencontainers.image.description="A message queue inside the MySQL or MariaDB you already run" \
      org.opencontainers.image.licenses="Apache-2.0"
ARG SOURCE_DATE_EPOCH=1580601600
RUN ["useradd", "--system", "--uid", "10001", "--no-create-home", "streamfrom"]
COPY --from=build /opt/streamfrom /opt/streamfrom
ENV PATH=/opt/streamfrom/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER streamfrom
EXPOSE 15306
# Healthy is who greets as a MySQL server does: protocol 10 in the first packet's first byte, or an error, as from one
# that is full and shall not be restarted for it. With [admin] in the configuration /readyz says more: see compose.yaml.
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import socket; assert socket.create_connection(('127.0.0.1', 15306), 2).recv(5)[4:] in (b'\\n', b'\\xff')"]
ENTRYPOINT ["streamfrom"]
CMD ["serve", "--config", "/etc/streamfrom/streamfrom.toml"]
