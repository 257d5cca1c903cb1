/** Number of Unicode code points. A code point that was split between two texts counts once. */
export function countCodePoints(text: string): number {
  let points = text.length;
  // Subtracts the second half of each surrogate pair.
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >> 10 === 0b110111) points -= 1;
  return points;
}
