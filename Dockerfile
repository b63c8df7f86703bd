# Two stages: the first builds and has a package index, the second has neither pip's cache nor sources.
FROM python:3.12-slim AS build

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY locks/serve.txt locks/serve.txt
COPY src src
# The locked versions with their hashes; then mannerly itself, without looking for anything else.
RUN python -m venv /opt/mannerly \
    && /opt/mannerly/bin/pip install --no-cache-dir --require-hashes --requirement locks/serve.txt \
    && /opt/mannerly/bin/pip install --no-cache-dir --no-deps .

FROM python:3.12-slim

# A number, so that Kubernetes can see that it is not root.
RUN useradd --uid 10001 --no-create-home --home-dir /data mannerly \
    && install --directory --owner 10001 --group 10001 --mode 700 /data
COPY --from=build /opt/mannerly /opt/mannerly
ENV PATH=/opt/mannerly/bin:$PATH

USER 10001
WORKDIR /data
VOLUME /data
# SIGTERM stops a crawl so that it can be resumed: requests in flight get two seconds (--grace).
STOPSIGNAL SIGTERM
# What the container serves must be ready: the service, or the live page of a crawl.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["python", "-m", "mannerly.service.health"]
ENTRYPOINT ["mannerly"]
EXPOSE 7465
CMD ["--help"]
