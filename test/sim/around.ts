// What happens around each call to a port.

/** Takes the call, with its own name and what it was given, and answers for it. */
type Around<Port> = (
  name: keyof Port & string,
  given: readonly unknown[],
  ask: () => Promise<unknown>,
) => Promise<unknown>;

/** The port, each call to which goes through `around`. */
export const surrounded = <Port extends object>(port: Port, around: Around<Port>): Port =>
  new Proxy(port, {
    get:
      (target, name) =>
      async (...given: readonly unknown[]) =>
        around(name as keyof Port & string, given, async () =>
          Reflect.apply(Reflect.get(target, name) as () => unknown, target, given),
        ),
  });

export const signalIn = (given: readonly unknown[]): AbortSignal | undefined =>
  given.find((one) => one instanceof AbortSignal);
