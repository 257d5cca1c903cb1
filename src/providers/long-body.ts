/**
 * A body that is kept no longer than until it is sent. undici keeps a request with its body until the answer has ended, which
 * for a stream may take minutes; of an iterable it keeps only this. Costs a few promises more than a Buffer does, and the
 * connection when a provider has answered before it was sent.
 */
export class LongBody {
  #body: string | Buffer | undefined;

  constructor(body: string | Buffer) {
    this.#body = body;
  }

  *[Symbol.iterator](): Generator<string | Buffer> {
    const body = this.#body;
    this.#body = undefined;
    if (body !== undefined) yield body;
  }
}
