type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

/** An object type with its snake_case keys in camelCase; values stay as they are. */
export type CamelKeys<T> = { [K in keyof T as K extends string ? Camel<K> : never]: T[K] };

/** The object with its own snake_case keys in camelCase. Does not look into values. */
export function camelKeys<T extends object>(snake: T): CamelKeys<T> {
  const entries = Object.entries(snake).map(([key, value]: [string, unknown]) => [
    key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as CamelKeys<T>;
}
