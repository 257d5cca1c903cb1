/** See program.mjs, which any Node from 18 on runs. */
export declare function programFlags(processors?: number): readonly string[];
export declare const programEnvironment: Readonly<Record<string, string>>;
export declare const program: { readonly folder: string };
export declare function ensureProgram(node: string): Promise<string>;
