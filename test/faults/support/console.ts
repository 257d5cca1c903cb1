import type { Product } from "../../support/product.ts";

/** An answer of the console's services. */
export interface ConsoleAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A password that may be one. */
export const PASSWORD = "four unrelated words";

/** Somebody who calls the console's services as its pages do, and keeps the session's cookie. */
export class ConsoleCaller {
  readonly #url: string;
  cookie = "";
  /** The latest token that makes the browser known. */
  browserToken = "";

  constructor({ url }: Pick<Product, "url">) {
    this.#url = url;
  }

  /** Calls `Service/Method` with a message in JSON, and gives whatever is answered. */
  async ask(method: string, message: object = {}): Promise<ConsoleAnswer> {
    const response = await fetch(`${this.#url}/parley.console.v1.${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(this.cookie !== "" && { cookie: this.cookie }) },
      body: JSON.stringify(message),
    });
    const cookies = response.headers.getSetCookie().map((line) => line.split(";")[0]!);
    this.cookie = cookies.find((pair) => pair.startsWith("sid=")) ?? this.cookie;
    this.browserToken =
      cookies.find((pair) => pair.startsWith("browser="))?.slice("browser=".length) ?? this.browserToken;
    return { status: response.status, body: (await response.json()) as ConsoleAnswer["body"] };
  }

  /** The same, for calls that have to succeed. */
  async call(method: string, message: object = {}): Promise<ConsoleAnswer["body"]> {
    const { status, body } = await this.ask(method, message);
    if (status !== 200) throw new Error(`${method} answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Makes an account and is signed in to it: the first one is the administrator's. */
  async signUp(email: string, more: object = {}): Promise<void> {
    await this.call("SessionService/SignUp", { email, password: PASSWORD, name: email.split("@")[0], ...more });
  }
}
