/** See program-flags.mjs, which any Node from 18 on runs. */
export declare function heapFlags(memoryBytes?: number, options?: string): readonly string[];
export declare function programFlags(processors?: number): readonly string[];
export declare const nativeEnvironment: Readonly<Record<string, string>>;
