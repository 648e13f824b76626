# Debian packages on top of another image of the same Debian.
ARG BASE
FROM ${BASE}
ARG PACKAGES
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${PACKAGES} \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
