# Generates code from the contract in $PARLEY_CONTRACT, compiles, and packs the artifact into dist/, a Maven repository.
set -euo pipefail

: "${PARLEY_CONTRACT:?is the folder of the unpacked contract}"
rm -rf dist
mvn --batch-mode --no-transfer-progress -Dorg.slf4j.simpleLogger.defaultLogLevel=warn clean deploy \
  -Dmaven.install.skip -DaltDeploymentRepository="dist::file://$PWD/dist"
