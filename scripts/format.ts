// npm run format: formats all files in place.
import { runTool } from "./tools.ts";

await runTool("oxfmt", []);
await runTool("buf", ["format", "proto", "--write"]);
