export interface Source {
  readonly commit: string | undefined;
  readonly isModified: boolean;
  readonly tags: readonly string[];
}

export interface Artifact {
  readonly name: string;
  readonly sha256: string;
}

export function readSource(folder: string): Source;

export function checkRelease(release: {
  readonly version: string;
  readonly changelog: string;
  readonly source: Source;
}): string;

export function sha256(content: Buffer): string;

export function formatSums(artifacts: readonly Artifact[]): string;

export function describeProvenance(build: {
  readonly artifacts: readonly Artifact[];
  readonly version: string;
  readonly source: Source;
  readonly repository: string;
  readonly builder: string;
  readonly lock: Artifact;
  readonly node: Artifact & { readonly version: string };
}): object;
