# The image: the single executable of a release, the C libraries that it loads, and nothing else (no shell, no package
# manager). See docs/operations/production.md.
#
# Pin the base by its digest for builds that can be repeated: --build-arg NODE_IMAGE=…@sha256:…
ARG NODE_IMAGE=docker.io/library/node:26.10.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
# Time of all files in the image.
ARG SOURCE_DATE_EPOCH=0
ENV PARLEY_NODE=system
WORKDIR /src
COPY . .
RUN npm run release && node scripts/image-root.mjs /image

FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Parley" \
      org.opencontainers.image.description="A completion gateway: one contract and OpenAI-compatible endpoints in front of many models" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image /
# Other containers and published ports reach these; outside a container the defaults are loopback.
ENV PATH=/usr/local/bin \
    PARLEY_HTTP_LISTEN=0.0.0.0:8080 \
    PARLEY_HTTP_ALLOW_PUBLIC=true \
    PARLEY_GRPC_LISTEN=0.0.0.0:50051 \
    PARLEY_GRPC_ALLOW_PUBLIC=true \
    PARLEY_OPERATIONS_LISTEN=0.0.0.0:9464 \
    PARLEY_OPERATIONS_ALLOW_PUBLIC=true \
    PARLEY_DATA_DIR=/var/lib/parley
# A parley.yaml that is mounted here is used.
WORKDIR /etc/parley
VOLUME ["/var/lib/parley"]
EXPOSE 8080 50051 9464
USER 65532:65532
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["/usr/local/bin/parley", "health"]
ENTRYPOINT ["/usr/local/bin/parley"]
CMD ["serve"]
