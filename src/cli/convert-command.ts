import { convertLitellm } from "../config/litellm/convert.ts";
import { readSource } from "../config/load.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { formatTable } from "./output.ts";

const FORMATS = { litellm: convertLitellm } as const;

export const configConvert: Command = {
  name: "config convert",
  summary: "convert another gateway's configuration (litellm) and list what has no counterpart",
  positionals: ["FORMAT", "FILE"],
  flags: {},
  async run({ positionals: [format = "", file = ""] }, { env, stdout, stderr }) {
    if (!isFormat(format))
      throw new UsageError(`FORMAT: "${format}" is not known; known are: ${Object.keys(FORMATS).join(", ")}`);
    const { yaml, remarks } = FORMATS[format](readSource({ file, env }).text, file);
    stdout.write(yaml);
    const rows = remarks.map(({ place, kind, setting, text }) => [`${place}:`, `${kind}:`, `${setting}:`, text]);
    if (rows.length > 0) stderr.write(`${formatTable(rows)}\n`);
    const lost = remarks.filter(({ kind }) => kind === "no counterpart").length;
    stderr.write(`Without a counterpart: ${lost}; to be checked: ${remarks.length - lost}.\n`);
    return EXIT.ok;
  },
};

function isFormat(word: string): word is keyof typeof FORMATS {
  return Object.hasOwn(FORMATS, word);
}
