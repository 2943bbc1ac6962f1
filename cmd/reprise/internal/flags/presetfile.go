package flags

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"reprise/replay/calibrate"
	"reprise/replay/engine"
	"reprise/trace/quantity"
)

// IsEngineFile tells whether a preset is the file of an engine, by its ending.
func IsEngineFile(preset string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(preset))
}

// openPreset is the preset of a name, the engine of a file that reprise calibrate wrote, or
// the bound of hardware, for steps as large as those of like.
func openPreset(name string, like engine.Config) (engine.Preset, error) {
	if strings.HasPrefix(name, rooflinePrefix) {
		return rooflinePreset(name, like)
	}
	if !IsEngineFile(name) {
		p, err := engine.OpenPreset(name)
		if errors.Is(err, engine.ErrUnknownPreset) {
			err = errors.New(err.Error() + "; or the engine.yaml of reprise calibrate")
		}
		return p, err
	}
	c, err := calibrate.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return engine.Preset{}, errors.New("there is no file " + quantity.Quote(name) +
			": reprise calibrate RESULTS -o FILE writes one")
	}
	if err != nil {
		return engine.Preset{}, err
	}
	return c.Preset(presetName(name)), nil
}

// presetName is a preset as results and messages name it: of a file without its folder.
func presetName(preset string) string {
	if IsEngineFile(preset) {
		return filepath.Base(preset)
	}
	return preset
}
