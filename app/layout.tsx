import "./globals.css";
import { GeistMono } from "geist/font/mono";
import { GeistSans } from "geist/font/sans";
import type { Metadata, Viewport } from "next";
import { cookies } from "next/headers";
import type { ReactNode } from "react";
import { TimeZoneProvider } from "#components/time-zone/time-zone-context.tsx";
import { ToastProvider } from "#components/ui/toast.tsx";
import { readTheme, themeCookie } from "#server/contracts/theme.ts";
import { timeZoneChoice } from "./page-time-zone.ts";

export const metadata: Metadata = {
  title: { default: "Sluice", template: "%s · Sluice" },
  description: "Notebooks that borrow GPUs from a pool while they run",
};

export const viewport: Viewport = {
  themeColor: [
    { media: "(prefers-color-scheme: light)", color: "#f4f6f6" },
    { media: "(prefers-color-scheme: dark)", color: "#0e1113" },
  ],
};

export default async function RootLayout({ children }: { children: ReactNode }) {
  const theme = readTheme((await cookies()).get(themeCookie)?.value);
  return (
    <html
      lang="en"
      data-theme={theme === "system" ? undefined : theme}
      className={`${GeistSans.variable} ${GeistMono.variable}`}
    >
      <body>
        <TimeZoneProvider choice={await timeZoneChoice()}>
          <ToastProvider>{children}</ToastProvider>
        </TimeZoneProvider>
      </body>
    </html>
  );
}
