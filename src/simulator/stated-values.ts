/** Values that a message states explicitly, in its order. They take precedence over generated examples. */
export interface StatedValues {
  readonly numbers: readonly number[];
  /** What stands in quotation marks. */
  readonly texts: readonly string[];
}

export const NOTHING_STATED: StatedValues = { numbers: [], texts: [] };

/** Not a part of a word, of a name such as `gpt-5`, or of a version. */
const NUMBER = /(?<![\w.]|\w-)-?\d+(?:\.\d+)?(?![\w.]*\w)/gu;

/** An apostrophe inside a word is no quotation mark. */
const QUOTED = /(?<!\w)(?:'([^']+)'|"([^"]+)")(?!\w)|“([^”]+)”/gu;

/** Reads the numbers and the quoted words of a message: `magic_function(3)` states 3, `named 'Åse'` states Åse. */
export function readStatedValues(message: string): StatedValues {
  const texts = [...message.matchAll(QUOTED)].map(([, single, double, curly]) => single ?? double ?? curly ?? "");
  return { numbers: Array.from(message.matchAll(NUMBER), ([digits]) => Number(digits)), texts };
}
