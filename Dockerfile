# instar in an image: any engine that builds OCI images will do.
#   docker build -t instar .            (buildah bud, podman build, kaniko …)
#   docker run -p 6443:6443 -v data:/data instar serve --listen :6443 --storage sqlite:/data/instar.db
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY requirements requirements
COPY instar instar
RUN python -m venv /opt/instar \
 && /opt/instar/bin/pip install --no-cache-dir --disable-pip-version-check -r requirements/base.txt \
 && /opt/instar/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps . \
 && /opt/instar/bin/pip uninstall -y pip \
 && /opt/instar/bin/python -m compileall -q /opt/instar/lib

FROM python:3.12-slim
COPY --from=build /opt/instar /opt/instar
ENV PATH=/opt/instar/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN mkdir /data && chown 65532:65532 /data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 6443
ENTRYPOINT ["instar"]
CMD ["serve", "--listen", ":6443", "--storage", "sqlite:/data/instar.db", "--kubeconfig", "/data/kubeconfig"]
