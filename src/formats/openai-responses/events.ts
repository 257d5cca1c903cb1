/** Writes the events of one stream, and numbers them. */
export class EventWriter {
  #sequence = 0;

  /** An event as text. `fields`: further fields as JSON text without braces, each with a comma before it. */
  write(type: string, fields: string): string {
    return `event: ${type}\ndata: {"type":"${type}"${fields},"sequence_number":${this.#sequence++}}\n\n`;
  }
}
