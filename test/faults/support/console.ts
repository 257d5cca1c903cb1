import type { Product } from "../../support/product.ts";

/** A response of the dashboard's services. */
export interface ConsoleAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A valid password. */
export const PASSWORD = "four unrelated words";

/** Calls the dashboard's services as its pages do, with the session's cookie. */
export class ConsoleCaller {
  readonly #url: string;
  cookie = "";
  /** The latest token of the known browser. */
  browserToken = "";

  constructor({ url }: Pick<Product, "url">) {
    this.#url = url;
  }

  /** Calls `Service/Method` with a JSON message, and returns any response. */
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

  /** Does the same, and throws for an error. */
  async call(method: string, message: object = {}): Promise<ConsoleAnswer["body"]> {
    const { status, body } = await this.ask(method, message);
    if (status !== 200) throw new Error(`${method} answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Signs up: the first account becomes the administrator's. */
  async signUp(email: string, more: object = {}): Promise<void> {
    await this.call("SessionService/SignUp", { email, password: PASSWORD, name: email.split("@")[0], ...more });
  }
}
