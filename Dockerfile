# An image that runs the local app. How to run it so that only you can reach it: docs/install.md.
FROM python:3.11-slim

COPY pyproject.toml README.md LICENSE /src/
COPY sottovoce /src/sottovoce
RUN pip install --no-cache-dir '/src[app,data,strong]' && rm -rf /src \
 && useradd --create-home sottovoce && mkdir /data && chown sottovoce /data

USER sottovoce
# Word spaces and the ledger: keep them in a volume, or the ledger forgets what was spent.
ENV SOTTOVOCE_HOME=/data
VOLUME /data

# What is added already is left alone; the service listens on loopback unless it is told otherwise.
ENTRYPOINT ["/bin/sh", "-c", "sottovoce spaces add default strong && exec sottovoce \"$@\"", "--"]
CMD ["serve", "--no-browser"]
