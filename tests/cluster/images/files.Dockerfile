# Finished programs and settings on top of another image.
ARG BASE
FROM ${BASE}
COPY root/ /
WORKDIR /
