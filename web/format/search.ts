/** Whether a text has every word of what somebody looks for, in any order and case. */
export function hasWords(text: string, sought: string): boolean {
  const lower = text.toLowerCase();
  return sought
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}
