# Generates code from the contract in $PARLEY_CONTRACT, compiles the package and packs it as parley-client-*.tgz.
npm ci --silent --ignore-scripts --prefer-offline
PATH="$PWD/node_modules/.bin:$PATH"
buf generate "$PARLEY_CONTRACT"
cat > src/gen/service-config.ts <<TS
import type { ServiceConfig } from "../service-config.js";

/** \`service_config.json\` of the contract. */
export const serviceConfig: ServiceConfig = $(cat "$PARLEY_CONTRACT/parley/v1/service_config.json");
TS
rm -rf dist
tsc --project .
npm pack --silent > /dev/null
