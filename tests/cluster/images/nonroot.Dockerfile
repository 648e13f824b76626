# A task image whose own user is not root, with a home folder that only this user may enter.
ARG BASE
FROM ${BASE}
RUN useradd --create-home --uid 1000 --shell /bin/bash agent && chmod 0700 /home/agent
USER agent
WORKDIR /home/agent
