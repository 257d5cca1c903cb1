/** Saves text, or its pieces, as a file of this media type. */
export function download(name: string, text: string | readonly string[], mediaType: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(
    new Blob(typeof text === "string" ? [text] : [...text], { type: `${mediaType};charset=utf-8` }),
  );
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
