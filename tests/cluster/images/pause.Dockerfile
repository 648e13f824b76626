FROM scratch
COPY root/ /
ENTRYPOINT ["/pause"]
