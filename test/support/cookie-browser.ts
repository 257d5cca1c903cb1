/** A response to a GET or to the POST of a form, with its address. */
export interface Visited {
  readonly url: URL;
  readonly status: number;
  /** The address of a redirection. */
  readonly location: URL | undefined;
  readonly headers: Headers;
  readonly text: string;
}

/** A browser as HTTP sees it: cookies of each origin, redirections only when asked. */
export class CookieBrowser {
  /** By origin and name. */
  readonly cookies = new Map<string, Map<string, string>>();

  async get(address: string | URL, headers: Readonly<Record<string, string>> = {}): Promise<Visited> {
    return this.#send(new URL(address), { headers });
  }

  async post(address: string | URL, fields: Readonly<Record<string, string>>): Promise<Visited> {
    return this.#send(new URL(address), { method: "POST", body: new URLSearchParams(fields) });
  }

  /** Follows redirections until a page, or until one to an address for which `ends` is true. That address is not requested. */
  async follow(visited: Visited, ends: (url: URL) => boolean = () => false): Promise<Visited> {
    let at = visited;
    for (let hops = 0; at.location !== undefined && !ends(at.location); hops += 1) {
      if (hops === 20) throw new Error(`too many redirections: ${at.url.href}`);
      at = await this.get(at.location);
    }
    return at;
  }

  async #send(url: URL, options: RequestInit): Promise<Visited> {
    const jar = this.cookies.get(url.origin) ?? new Map<string, string>();
    this.cookies.set(url.origin, jar);
    const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
    const headers = { ...(options.headers as Record<string, string>), ...(cookie !== "" && { cookie }) };
    const response = await fetch(url, { ...options, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "" || /max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    const location = response.headers.get("location");
    return {
      url,
      status: response.status,
      location: location === null ? undefined : new URL(location, url),
      headers: response.headers,
      text: await response.text(),
    };
  }
}
