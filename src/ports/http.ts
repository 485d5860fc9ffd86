// One HTTP request and its answer: what fetching an access token needs, and no more.

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
  /** Ends the request when it aborts, also while the answer is being read. */
  readonly signal: AbortSignal;
  /** An answer with a longer body fails: it is not what was asked for, and must not fill the memory. */
  readonly maxBytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * Resolves with the answer, whatever its status. Redirects are not followed: what a request carries is for the server it
 * names. @throws what there is to say when no answer came or `signal` aborted.
 */
export type HttpFetch = (request: HttpRequest) => Promise<HttpAnswer>;
