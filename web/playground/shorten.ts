/** Truncates base64 image data, which can be a million characters. */
export function shorten(text: string): string {
  return text.replaceAll(/[A-Za-z0-9+/=]{2000,}/g, (data) => `${data.slice(0, 40)}… (${data.length} characters)`);
}
