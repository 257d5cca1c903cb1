// npm run dashboards: writes the dashboards for Grafana into deploy/grafana/dashboards.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runTool } from "../tools.ts";
import { money } from "./money.ts";
import { overview } from "./overview.ts";
import { processes } from "./process.ts";
import { providers } from "./providers.ts";

const folder = join(import.meta.dirname, "../../deploy/grafana/dashboards");
for (const dashboard of [overview, providers, money, processes])
  writeFileSync(join(folder, `${dashboard.uid}.json`), `${JSON.stringify(dashboard, null, 2)}\n`);
await runTool("oxfmt", [folder]);
