import { readFileSync } from "node:fs";

const PAGE = readFileSync(new URL("../../docs/clients.md", import.meta.url), "utf8");

/** Paths of each wire format's completions. */
export const ROUTES = {
  chat: /^\/v1\/chat\/completions$/,
  responses: /^\/v1\/responses$/,
  messages: /^\/v1\/messages$/,
  gemini: /^\/v1beta\/models\/[^/]+:(?:streamG|g)enerateContent$/,
} as const;

export type FormatName = keyof typeof ROUTES;

/** How an agent is started for one task. */
export interface Start {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Contents of files by their paths below `$HOME`. */
  readonly homeFiles?: Readonly<Record<string, string>>;
  /** Contents of files by their paths below the working folder. */
  readonly workFiles?: Readonly<Record<string, string>>;
}

/** A gateway and a task for an agent. */
interface Task {
  readonly format: FormatName;
  /** The gateway's address, without a path. */
  readonly url: string;
  readonly apiKey: string;
  /** Asks for one call of the agent's tool for commands. */
  readonly prompt: string;
}

/** A coding agent of the npm registry. */
export interface Agent {
  /** The package's name. */
  readonly package: string;
  readonly version: string;
  readonly program: string;
  /** The package's own script that puts its program into place, where one is needed after `--ignore-scripts`. */
  readonly afterInstall?: string;
  /** The first release line of Node that it does not run on. */
  readonly belowNode?: number;
  readonly formats: readonly FormatName[];
  /** Writes a call of its tool for commands in the simulator's notation. */
  readonly call: (command: string) => string;
  readonly start: (task: Task) => Start;
}

const OPENCODE_PROVIDERS: Readonly<Record<FormatName, { readonly npm: string; readonly path: string }>> = {
  chat: { npm: "@ai-sdk/openai-compatible", path: "/v1" },
  responses: { npm: "@ai-sdk/openai", path: "/v1" },
  messages: { npm: "@ai-sdk/anthropic", path: "/v1" },
  gemini: { npm: "@ai-sdk/google", path: "/v1beta" },
};

const QWEN_TYPES: Readonly<Partial<Record<FormatName, string>>> = {
  chat: "openai",
  messages: "anthropic",
  gemini: "gemini",
};

/** Codex asks for no approval, and its commands may do anything: the folder is thrown away. */
const CODEX_FLAGS = [
  "exec",
  "--skip-git-repo-check",
  "--dangerously-bypass-approvals-and-sandbox",
  "--config=web_search='disabled'",
  "--config=analytics.enabled=false",
];

/** Settings of Gemini CLI and of Qwen Code, which is made from it: no calls of other servers. */
const QUIET = {
  telemetry: { enabled: false },
  privacy: { usageStatisticsEnabled: false },
  general: { enableAutoUpdate: false },
};

const GEMINI_SETTINGS = {
  ...QUIET,
  security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
};

/**
 * The agents by the names that the command line has for them. Each is set up as `docs/clients.md` says; additional settings
 * turn off questions, and calls of other servers.
 */
export const AGENTS: Readonly<Record<string, Agent>> = {
  opencode: {
    package: "opencode-ai",
    version: "1.18.33",
    program: "opencode",
    afterInstall: "postinstall.mjs",
    formats: ["chat", "responses", "messages", "gemini"],
    call: (command) => `bash(command='${command}')`,
    start({ format, url, apiKey, prompt }) {
      const { npm, path } = OPENCODE_PROVIDERS[format];
      const settings = codeOf("### opencode", "json")
        .replace("@ai-sdk/openai-compatible", npm)
        .replace(/http:[^"]*/, url + path)
        .replace("YOUR_KEY", apiKey);
      return {
        args: ["run", prompt],
        workFiles: { "opencode.json": settings },
        env: {
          OPENCODE_DISABLE_MODELS_FETCH: "1",
          OPENCODE_DISABLE_AUTOUPDATE: "1",
        },
      };
    },
  },
  qwen: {
    package: "@qwen-code/qwen-code",
    version: "0.15.10",
    program: "qwen",
    // Its requests of chat completions fail with "fetch failed" before they are sent.
    belowNode: 26,
    formats: ["chat", "messages", "gemini"],
    call: (command) => `run_shell_command(command='${command}', is_background=false)`,
    start: (task) => ({
      args: ["--auth-type", QWEN_TYPES[task.format]!, "--yolo", "-p", task.prompt],
      env: variablesOf("### Qwen Code", task, QWEN_TYPES[task.format]),
      homeFiles: { ".qwen/settings.json": JSON.stringify(QUIET) },
    }),
  },
  codex: {
    package: "@openai/codex",
    version: "0.169.0",
    program: "codex",
    formats: ["responses"],
    call: (command) => `exec_command(cmd='${command}')`,
    start: (task) => ({
      args: [...CODEX_FLAGS, task.prompt],
      homeFiles: { ".codex/config.toml": codeOf("### Codex", "toml").replace("http://127.0.0.1:8080", task.url) },
      env: variablesOf("### Codex", task),
    }),
  },
  claude: {
    package: "@anthropic-ai/claude-code",
    version: "2.1.197",
    program: "claude",
    afterInstall: "install.cjs",
    formats: ["messages"],
    call: (command) => `Bash(command='${command}', description='Reads a file')`,
    start: (task) => ({
      args: ["-p", task.prompt, "--allowedTools", "Bash"],
      env: variablesOf("### Claude Code", task),
    }),
  },
  gemini: {
    package: "@google/gemini-cli",
    version: "0.61.0",
    program: "gemini",
    formats: ["gemini"],
    call: (command) => `run_shell_command(command='${command}', is_background=false)`,
    start: (task) => ({
      args: ["--yolo", "--skip-trust", "-m", "beta-3-flash", "-p", task.prompt],
      homeFiles: { ".gemini/settings.json": JSON.stringify(GEMINI_SETTINGS) },
      env: variablesOf("### Gemini CLI", task),
    }),
  },
};

/** Returns the code of this language after a heading of the page; of several, the one with this word. */
function codeOf(heading: string, language: string, word = ""): string {
  const section = PAGE.split(`\n${heading}\n`)[1]?.split(/\n#+ /)[0] ?? "";
  const codes = Array.from(section.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs")), ([, code]) => code!);
  const found = codes.find((code) => code.includes(word));
  if (found === undefined) throw new Error(`docs/clients.md has no ${language} code after "${heading}"`);
  return found;
}

/** Returns the variables that this code of the page exports, with the task's address and key. */
function variablesOf(heading: string, { url, apiKey }: Task, word?: string): Record<string, string> {
  const lines = codeOf(heading, "sh", word)
    .split("\n")
    .filter((line) => line.startsWith("export "));
  const pairs = lines.flatMap((line) => line.split(" ").slice(1)).map((pair) => pair.split("=") as [string, string]);
  return Object.fromEntries(
    pairs.map(([name, value]) => [name, value.replace("http://127.0.0.1:8080", url).replace("YOUR_KEY", apiKey)]),
  );
}
