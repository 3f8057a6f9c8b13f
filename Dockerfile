# The proxy alone: docker build -t streamfrom . && docker run -v $PWD/etc:/etc/streamfrom:ro -p 15306:15306 streamfrom
FROM python:3.12-slim AS build
WORKDIR /src
RUN ["python", "-m", "venv", "/opt/streamfrom"]
# Dependencies first: they change less often than the code.
COPY requirements.lock pyproject.toml ./
RUN python -c "import tomllib; print('\n'.join(tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']))" > dependencies.txt \
 && /opt/streamfrom/bin/pip install --no-cache-dir --constraint requirements.lock --requirement dependencies.txt
# .dockerignore lets nothing through but the packages and what describes them.
COPY . ./
RUN ["/opt/streamfrom/bin/pip", "install", "--no-cache-dir", "--no-deps", "."]

FROM python:3.12-slim
RUN ["useradd", "--system", "--uid", "10001", "--no-create-home", "streamfrom"]
COPY --from=build /opt/streamfrom /opt/streamfrom
ENV PATH=/opt/streamfrom/bin:$PATH PYTHONUNBUFFERED=1
USER streamfrom
EXPOSE 15306
# Healthy is who greets as a MySQL server does: protocol 10 in the first packet's first byte.
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import socket; assert socket.create_connection(('127.0.0.1', 15306), 2).recv(5)[4:] == b'\\n'"]
ENTRYPOINT ["streamfrom"]
CMD ["serve", "--config", "/etc/streamfrom/streamfrom.toml"]
