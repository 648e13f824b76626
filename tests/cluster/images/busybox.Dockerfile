# An image with one program, as the smallest task images have: no bash, no coreutils, no package manager.
ARG BASE
FROM ${BASE} AS source
FROM scratch
COPY --from=source /bin/busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY root/ /
ENV PATH=/bin
CMD ["sh"]
