# evsched as a small image: the wheel, the locked versions with their hashes, and nobody's rights.
# Build the wheel in a stage of its own, so that the tools for it stay behind.
# The image is named by its tag; pin its digest (`python@sha256:…`) for anything but a try.
FROM python:3.11-slim AS build
WORKDIR /build
COPY requirements-dev.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-dev.lock
COPY pyproject.toml README.md LICENSE ./
COPY events ./events
COPY evsched ./evsched
COPY projections ./projections
COPY replays ./replays
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /dist .

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home evsched \
    && mkdir /var/lib/evsched \
    && chown evsched /var/lib/evsched
WORKDIR /install
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY --from=build /dist ./
RUN pip install --no-cache-dir --no-deps ./*.whl
WORKDIR /var/lib/evsched
USER evsched
ENV XDG_DATA_HOME=/var/lib/evsched PYTHONUNBUFFERED=1
VOLUME /var/lib/evsched
ENTRYPOINT ["evsched"]
CMD ["run"]
