# The runner: the main container of every pod of a run. docs/images.md says how to build and publish it.
#
#   docker build -t REGISTRY/argo-harbor/runner:TAG .
#   docker build -t REGISTRY/argo-harbor/runner:TAG-oracle --build-arg AGENTS=oracle .

# Any image with Python 3.13 and its `venv` module.
ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS wanted
# any: Harbor with all its agents. oracle: the small image, for the agents that call no model.
ARG AGENTS=any
COPY pyproject.toml docker/requirements.py /
RUN python3 /requirements.py /pyproject.toml "${AGENTS}" /requirements

# The secrets are for package indexes of one's own.
FROM ${PYTHON} AS program
COPY --from=wanted /requirements/build.txt /
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt \
    python3 -m venv /pip \
    && python3 -m venv --without-pip /opt/argo-harbor \
    && /pip/bin/pip install --no-cache-dir -r /build.txt
COPY . /source
RUN /pip/bin/pip wheel --no-deps --no-index --no-build-isolation --wheel-dir /wheel /source \
    && /pip/bin/pip --python /opt/argo-harbor/bin/python install --no-deps --no-index --no-compile \
        --prefix /program /wheel/*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash -s /program -p /opt/argo-harbor /program/lib

FROM ${PYTHON}
LABEL org.opencontainers.image.title="argo-harbor runner" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=wanted /requirements /opt/argo-harbor/requirements
COPY docker/constraints.txt /opt/argo-harbor/requirements/
# pip comes and goes within this step. Compiled here, for the runner may not write beside the sources; by hash,
# for layers do not keep times.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt \
    set -eu; \
    cd /opt/argo-harbor; \
    export PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PIP_CONSTRAINT=requirements/constraints.txt; \
    python3 -m venv /pip; \
    python3 -m venv --without-pip .; \
    /pip/bin/pip --python bin/python install -r requirements/run.txt; \
    /pip/bin/pip --python bin/python install --no-deps -r requirements/harbor.txt; \
    rm -rf /pip; \
    python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash lib
# Python's own modules come as sources only in the official images. What could install more goes, from Debian too.
RUN set -eu; \
    library="$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"; \
    rm -rf "$library"/site-packages/pip* "$library/ensurepip" /usr/local/bin/pip* /usr/share/python-wheels; \
    python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        -x '/(test|idlelib|tkinter|turtledemo|lib2to3|site-packages)/' "$library"; \
    echo 'nonroot:x:65532:65532:nonroot:/trial:/usr/sbin/nologin' >> /etc/passwd; \
    echo 'nonroot:x:65532:' >> /etc/group; \
    install -d -o 65532 -g 65532 /trial
ENV PATH=/opt/argo-harbor/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/trial \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HARBOR_TELEMETRY=0 \
    LITELLM_LOCAL_MODEL_COST_MAP=True
WORKDIR /trial
USER 65532:65532
ENTRYPOINT ["python", "-m", "argo_harbor.runner"]
# The only layer that a change of the program changes.
COPY --from=program /program /opt/argo-harbor
