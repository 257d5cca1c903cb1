/** Saves a text, or the pieces of one, as a file of this media type. */
export function download(name: string, text: string | BlobPart[], mediaType: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text].flat(), { type: `${mediaType};charset=utf-8` }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
