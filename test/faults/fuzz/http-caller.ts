import { RawConnection, type RawResponse } from "../../product/support/raw-http.ts";
import { flawOfAnswer, flawOfAnswers } from "./http-answers.ts";
import type { HttpInput } from "./http-inputs.ts";

/** Timeout after which a response counts as missing. */
const TIMEOUT_MS = 30_000;

/** Result of an input. */
export interface HttpOutcome {
  /** 0 when the connection ended without a response. */
  readonly status: number;
  readonly flaw: string | undefined;
}

/** Sends inputs in sequence on one connection while the server keeps it open. */
export class HttpCaller {
  readonly #port: number;
  #kept: RawConnection | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends an input. Never throws. */
  async send(input: HttpInput): Promise<HttpOutcome> {
    const asked = input.isWellFramed ? this.#ask(input.bytes) : this.#sendAlone(input.bytes);
    return inTime(asked).catch((error: unknown) => ({ status: 0, flaw: String(error) }));
  }

  close(): void {
    this.#kept?.close();
  }

  async #ask(bytes: Buffer): Promise<HttpOutcome> {
    const connection = this.#kept?.closed === false ? this.#kept : new RawConnection(this.#port);
    this.#kept = connection;
    try {
      let answer = await connection.write(bytes).response();
      while (answer.status === 100) answer = await connection.response();
      if (this.#isOver(answer)) this.close();
      return { status: answer.status, flaw: flawOfAnswer(answer) };
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #isOver({ headers }: RawResponse): boolean {
    if (headers["connection"] !== "close") return false;
    this.#kept?.close();
    this.#kept = undefined;
    return true;
  }

  async #sendAlone(bytes: Buffer): Promise<HttpOutcome> {
    const { status, text } = await new RawConnection(this.#port).write(bytes).finish();
    const isHead = bytes.subarray(0, 5).toString() === "HEAD ";
    return { status, flaw: isHead ? undefined : flawOfAnswers(Buffer.from(text, "latin1")) };
  }
}

async function inTime<T>(asked: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}
