/** Sets a field of a body, or removes it. */
export function setField(fields: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined) delete fields[name];
  else fields[name] = value;
}

/** Whether two lists have the same values in the same order. */
export function isSameList<T>(
  given: readonly unknown[],
  translated: readonly T[],
  isSame: (one: unknown, other: T) => boolean,
): boolean {
  return given.length === translated.length && translated.every((other, index) => isSame(given[index], other));
}

/** Whether each of these fields is as the caller gave it, where the caller gave it. */
export function keepsFields(given: object, translated: object, names: readonly string[]): boolean {
  const [one, other] = [given, translated] as Readonly<Record<string, unknown>>[];
  return names.every((name) => one![name] == null || one![name] === other![name]);
}
