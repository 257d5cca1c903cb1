/** Results of actions, shown for some seconds by `toasts.tsx`, which is loaded for the first one. */
class Notices {
  #waiting: readonly string[] = [];
  #show: ((text: string) => void) | undefined;
  readonly #listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Whether texts wait to be shown. */
  readonly isWaiting = (): boolean => this.#waiting.length > 0;

  add(text: string): void {
    if (this.#show !== undefined) return this.#show(text);
    this.#waiting = [...this.#waiting, text];
    for (const listener of this.#listeners) listener();
  }

  /** Shows the texts that wait, and all further ones until the returned function is called. */
  readonly showWith = (show: (text: string) => void): (() => void) => {
    this.#show = show;
    for (const text of this.#waiting) show(text);
    this.#waiting = [];
    return () => {
      this.#show = undefined;
    };
  };
}

export const notices = new Notices();

/** Tells the result of an action that succeeded. Errors are shown where they happened instead. */
export function notify(text: string): void {
  notices.add(text);
}
