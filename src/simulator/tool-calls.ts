import { findToolResults, readQuestion, type Prompt } from "./prompt.ts";

/** Words that a question leaves out: it asks for the weather, not to get it. */
const FETCHING = /^(?:fetch|find|get|list|read)$/iu;

const GAP = "[^A-Za-z0-9]?";

/** Whether the text names the tool: as `get_weather`, `get-weather` or `get weather`, or what it gets, the `weather`. */
function isNamed(tool: string, question: string): boolean {
  const words = tool.split(/[^A-Za-z0-9]+/u).filter(Boolean);
  const [first, ...rest] = words;
  if (first === undefined) return false;
  const name = rest.length > 0 && FETCHING.test(first) ? `(?:${first}${GAP})?${rest.join(GAP)}` : words.join(GAP);
  return new RegExp(`\\b${name}\\b`, "iu").test(question);
}

/**
 * The tools that an answer calls, on a plain rule. A required call is made to the tools that the last user message
 * names, or else to the first one allowed. Left to itself the simulator calls the tools that the message names, and
 * after their results came back it answers with text.
 */
export function chooseTools(prompt: Prompt): string[] {
  const { mode, names, parallel } = prompt.toolChoice;
  const isRequired = mode === "required";
  if (mode === "none" || (!isRequired && findToolResults(prompt).length > 0)) return [];
  const question = readQuestion(prompt);
  const allowed = prompt.tools.map((tool) => tool.name).filter((name) => names?.includes(name) ?? true);
  const named = allowed.filter((name) => isNamed(name, question));
  const chosen = named.length > 0 || !isRequired ? named : allowed.slice(0, 1);
  return parallel ? chosen : chosen.slice(0, 1);
}
