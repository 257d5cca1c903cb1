/** What the API reference is made of. The build writes it (`scripts/reference/`): from the protos, and from the OpenAPI document. */
export interface Reference {
  /** Every object of the OpenAI format and every message of the contract, side by side. */
  readonly topics: readonly Topic[];
  readonly methods: readonly Method[];
  readonly headers: { readonly request: readonly Header[]; readonly answer: readonly Header[] };
  readonly errors: readonly ErrorRow[];
  readonly limits: Limits;
  readonly downloads: readonly Download[];
}

/** How much a request may be, whoever sends it. */
export interface Limits {
  readonly bodyMebibytes: number;
  readonly jsonDepth: number;
  readonly jsonValues: number;
  readonly messages: number;
  readonly fallbacks: number;
  readonly stops: number;
}

/** Some shapes about one thing, over HTTP and over gRPC. */
export interface Topic {
  readonly id: string;
  readonly title: string;
  readonly http: readonly Shape[];
  readonly grpc: readonly Shape[];
}

/** An object, a message, or an enumeration. */
export interface Shape {
  readonly anchor: string;
  readonly name: string;
  readonly text: string;
  readonly fields: readonly Field[];
  /** The shapes of which it is one, where it has no fields of its own. */
  readonly choices?: readonly TypePart[];
}

export interface Field {
  readonly anchor: string;
  readonly name: string;
  /** Empty for a value of an enumeration. */
  readonly type: readonly TypePart[];
  /** Whether it must be asked with, or is always answered. */
  readonly presence?: "required" | "always";
  /** Ranges, defaults and the like, in a few words each. */
  readonly facts: readonly string[];
  readonly text: string;
}

/** A piece of a type's name, and where it is explained. */
export interface TypePart {
  readonly text: string;
  readonly anchor?: string;
}

/** A method of a service of the contract. */
export interface Method {
  readonly anchor: string;
  /** Such as `parley.v1.CompletionService/Create`. */
  readonly path: string;
  readonly text: string;
  readonly input: TypePart;
  readonly output: TypePart;
  readonly isStream: boolean;
}

export interface Header {
  readonly anchor: string;
  readonly name: string;
  readonly text: string;
  /** On which requests or answers it is; all when absent. */
  readonly when?: string;
}

/** What one failure is on the wire. */
export interface ErrorRow {
  readonly anchor: string;
  readonly code: string;
  /** Undefined for callers that have left. */
  readonly http?: number;
  readonly type: string;
  /** Values of `error.code`; none where the body has no such field. */
  readonly errorCodes: readonly (string | null)[];
  readonly grpc: string;
  /** Whether official clients are told not to try again. */
  readonly isFinal: boolean;
  /** Whether it says how long to wait. */
  readonly tellsWait: boolean;
}

/** A file under `/proto/`. */
export interface Download {
  readonly path: string;
  readonly bytes: number;
}

/** The anchor of a failure's code, also for links from elsewhere. */
export function errorAnchor(code: string): string {
  return `error-${code}`;
}
