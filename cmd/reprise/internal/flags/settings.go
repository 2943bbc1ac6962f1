package flags

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
)

// settingsTable has a line for each setting: a flag that few people type, which is set by --set NAME=VALUE, in the run
// file or by a variable. Behind its name stand the commands where it is no flag, if it is not all that declare it, and
// behind a colon its help. Its kind and its default stand where it is declared.
//
//go:embed settings.txt
var settingsTable string

// A settingRow is a line of the table.
type settingRow struct {
	commands []string
	help     string
}

var settingRows = func() map[string]settingRow {
	rows := map[string]settingRow{}
	for line := range strings.Lines(settingsTable) {
		head, help, _ := strings.Cut(strings.TrimSpace(line), ": ")
		words := strings.Fields(head)
		rows[words[0]] = settingRow{words[1:], help}
	}
	return rows
}()

// setUsage is the help of --set.
const setUsage = "`NAME=VALUE` of a setting, see --help-all; repeatable"

// isSettingOf tells whether a name is a setting of a command.
func isSettingOf(command, name string) bool {
	row, is := settingRows[name]
	return is && command != "" && (len(row.commands) == 0 || slices.Contains(row.commands, command))
}

// Offered tells whether help, completion and proposals know a flag or a setting. To pflag settings are hidden.
func Offered(f *pflag.Flag) bool { return !f.Hidden || cli.IsSetting(f) }

// Spelled is how a message names a flag or a setting.
func Spelled(f *pflag.Flag) string {
	if cli.IsSetting(f) {
		return "--set " + f.Name
	}
	return "--" + f.Name
}

// Typed is a flag or a setting with a value, as one word of a command line.
func Typed(f *pflag.Flag, value string) string {
	return strings.Replace(Spelled(f), " ", "=", 1) + "=" + value
}

// setting finds the setting with a name; nil if the command has none of that name.
func setting(fl *pflag.FlagSet, name string) *pflag.Flag {
	if f := fl.Lookup(name); f != nil && cli.IsSetting(f) {
		return f
	}
	return nil
}

// settingsOf are the names of the settings of a command.
func settingsOf(fl *pflag.FlagSet) (names []string) {
	fl.VisitAll(func(f *pflag.Flag) {
		if cli.IsSetting(f) {
			names = append(names, f.Name)
		}
	})
	return names
}

// asSetting is the error of a setting that is typed as a flag, which it once was.
func asSetting(f *pflag.Flag) error {
	value := placeholder(f)
	if value != "" {
		value = "=" + value
	}
	return fmt.Errorf("--%s is a setting: type %s%s, or write %[1]s: … in the run file", f.Name, Spelled(f), value)
}

// noSetting is the error of --set with a name that is no setting. It never quotes the value, which may be a secret.
func noSetting(fl *pflag.FlagSet, name string) error {
	if f := fl.Lookup(name); f != nil && !f.Hidden {
		return fmt.Errorf("--set: %s is a flag: type --%[1]s %s", name, placeholder(f))
	}
	next := "--help-all lists them"
	if near := closest(name, settingsOf(fl)); near != "" {
		next = "did you mean " + near + "? " + next
	}
	if fl.Lookup("serve-cmd") != nil {
		next += "; the value of a placeholder needs --serve-cmd"
	}
	return fmt.Errorf("--set: there is no setting %s: %s", name, next)
}
